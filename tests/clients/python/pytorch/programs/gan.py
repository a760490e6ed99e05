"""A generative adversarial network with convolutions."""

import torch
import torch.nn as nn
import torch.optim as optim

from shared import digits, normal, set_weights


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.constant_(m.weight.data[0, 0], 0.01)
    elif classname.find("BatchNorm") != -1:
        m.weight.data.fill_(1.0)
        m.bias.data.fill_(0)


class Generator(nn.Module):
    def __init__(self, nz=8, ngf=8):
        super(Generator, self).__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 3, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self, ndf=8):
        super(Discriminator, self).__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, 1, 3, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input):
        return self.main(input).view(-1, 1).squeeze(1)


device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
netG, netD = Generator(), Discriminator()
set_weights(netG, 3)
set_weights(netD, 4)
netG.apply(weights_init)
netD.apply(weights_init)
netG.to(device)
netD.to(device)
criterion = nn.BCELoss()
real_label = 1
fake_label = 0
optimizerD = optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=1e-3, betas=(0.5, 0.999))
images, _ = digits(16)
noises = normal(15, 16, 8, 1, 1)
for step in range(15):
    netD.zero_grad()
    real = images.to(device)
    batch_size = real.size(0)
    label = torch.full((batch_size,), real_label, dtype=real.dtype, device=device)
    output = netD(real)
    errD_real = criterion(output, label)
    errD_real.backward()
    D_x = output.mean().item()
    fake = netG(noises[step])
    label.fill_(fake_label)
    output = netD(fake.detach())
    errD_fake = criterion(output, label)
    errD_fake.backward()
    errD = errD_real + errD_fake
    optimizerD.step()
    netG.zero_grad()
    label.fill_(real_label)
    output = netD(fake)
    errG = criterion(output, label)
    errG.backward()
    optimizerG.step()
    print("step", 2 * step, "discriminator loss", f"{errD.item():.6f}")
    print("step", 2 * step + 1, "generator loss", f"{errG.item():.6f}")
