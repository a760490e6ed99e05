"""Segments images by a small U-Net."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, random_split

from shared import digits, set_weights


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.GroupNorm(2, out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        else:
            self.up = nn.ConvTranspose2d(in_channels * 2 // 3, in_channels * 2 // 3, kernel_size=2, stride=2)
        self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        diffY = x2.size()[2] - x1.size()[2]
        diffX = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inc = DoubleConv(1, 4)
        self.downs = nn.ModuleList([DoubleConv(4, 8), DoubleConv(8, 8)])
        self.up1 = Up(16, 4, bilinear=True)
        self.up2 = Up(8, 4, bilinear=True)
        self.outc = nn.Conv2d(4, 2, kernel_size=1)

    def forward(self, x):
        features = [self.inc(x)]
        for down in self.downs:
            features.append(down(F.max_pool2d(features[-1], 2)))
        x = self.up1(features[2], features[1])
        x = self.up2(x, features[0])
        return self.outc(x)


class Masks(Dataset):
    def __init__(self, count):
        self.images, _ = digits(count)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index]
        return {"image": image, "mask": (image[0] > 0.7).long()}


def dice_loss(input, target, epsilon=1e-6):
    inter = 2 * (input * target).sum(dim=(-1, -2))
    sets_sum = input.sum(dim=(-1, -2)) + target.sum(dim=(-1, -2))
    sets_sum = torch.where(sets_sum == 0, inter, sets_sum)
    return 1 - ((inter + epsilon) / (sets_sum + epsilon)).mean()


dataset = Masks(24)
train_set, val_set = random_split(dataset, [20, 4], generator=torch.Generator().manual_seed(0))
train_set.indices = list(range(20))
loader = DataLoader(train_set, batch_size=4, shuffle=False)
model = UNet()
set_weights(model, 8)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, weight_decay=1e-8, momentum=0.9, foreach=True)
criterion = nn.CrossEntropyLoss()
step = 0
for epoch in range(6):
    model.train()
    for batch in loader:
        images, true_masks = batch["image"], batch["mask"]
        masks_pred = model(images)
        loss = criterion(masks_pred, true_masks)
        loss += dice_loss(F.softmax(masks_pred, dim=1).float(), F.one_hot(true_masks, 2).permute(0, 3, 1, 2).float())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(f"step {step} loss {loss.item():.6f}")
        step += 1
