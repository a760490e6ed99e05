"""A language model of LSTM layers, with truncated backpropagation through time."""

import math

import numpy as np
import torch
import torch.nn as nn

from shared import set_weights


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, tie_weights=True):
        super(RNNModel, self).__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(0.0)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        self.nhid = nhid
        self.nlayers = nlayers

    def init_weights(self):
        # The forget gates' biases begin at 1.
        for name, parameter in self.rnn.named_parameters():
            if "bias_ih" in name:
                n = parameter.size(0)
                parameter.data[n // 4:n // 2].fill_(1.0)
            elif "bias_hh" in name:
                parameter.data.zero_()

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output))
        return decoded.view(-1, self.ntoken), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return (weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid))


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    return data.view(bsz, -1).t().contiguous()


def get_batch(source, i, bptt):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i:i + seq_len], source[i + 1:i + 1 + seq_len].view(-1)


random = np.random.default_rng(6)
tokens = np.cumsum(random.integers(1, 3, 4 * 92)) % 11
train_data = batchify(torch.tensor(tokens, dtype=torch.long), 4)
model = RNNModel(11, 12, 12, 2)
set_weights(model, 5)
model.init_weights()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
hidden = model.init_hidden(4)
step = 0
for epoch in range(2):
    for i in range(0, train_data.size(0) - 1, 6):
        data, targets = get_batch(train_data, i, 6)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        print(f"step {step} perplexity {math.exp(loss.item()):.2f} loss {loss.item():.6f}")
        step += 1
