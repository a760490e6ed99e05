"""How the examples write text with a trained GPT."""

import kiln


class Writer:
    """Draws one token after another, with the keys and values of those before in a cache.

    The number of tokens is a variable in the cache's shape: one program serves all of them, and
    attends to no more than there are. The drawn token stays on the device as the next one's input.
    """

    def __init__(self, model, temperature):
        self.model = model.eval()
        self.temperature = temperature
        self.cache = model.new_cache()

    @kiln.jit
    def feed(self, token, length):
        """The token drawn after one more, both (1,); length counts all of them."""
        logits = self.model.decode(token, length, self.cache) / self.temperature
        # The largest of logits with Gumbel's noise is a draw from their softmax.
        noise = -(-kiln.rand(logits.shape).clamp(1e-12, 1.0).log()).clamp(1e-12).log()
        return (logits + noise).argmax(-1)

    def write(self, prompt, count):
        """`count` tokens after those of the prompt."""
        context = self.model.config.context
        written = [kiln.tensor([number]) for number in prompt]
        waiting = written[-(context // 2) :]
        fed = 0
        for _ in range(count):
            if fed + len(waiting) > context:  # begin again with the last ones
                fed, waiting = 0, written[-(context // 2) :]
            for token in waiting:
                fed += 1
                drawn = self.feed(token, self.model.length(fed))
            written.append(drawn)
            waiting = [drawn]
        return [token.item() for token in written[len(prompt) :]]
