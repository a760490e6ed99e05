"""A variational autoencoder."""

import torch
from torch import nn, optim
from torch.nn import functional as F

from shared import digits, normal, set_weights


class VAE(nn.Module):
    def __init__(self, noise):
        super().__init__()
        self.fc1 = nn.Linear(144, 48)
        self.fc21 = nn.Linear(48, 6)
        self.fc22 = nn.Linear(48, 6)
        self.fc3 = nn.Linear(6, 48)
        self.fc4 = nn.Linear(48, 144)
        self.register_buffer("noise", noise)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar, step):
        std = torch.exp(0.5 * logvar)
        eps = self.noise[step]
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x, step):
        mu, logvar = self.encode(x.view(-1, 144))
        z = self.reparameterize(mu, logvar, step)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 144), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


images, _ = digits(32)
images = images.clamp(0, 1)
model = VAE(normal(30, 32, 6))
set_weights(model)
optimizer = optim.Adam(model.parameters(), lr=1e-3)
model.train()
for step in range(30):
    optimizer.zero_grad()
    recon_batch, mu, logvar = model(images, step)
    loss = loss_function(recon_batch, images, mu, logvar)
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item() / len(images):.6f}")
