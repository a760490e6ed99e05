"""How the examples write text with a trained GPT."""

import kiln


class Writer:
    """Draws one token after another, with the keys and values of those before in a cache.

    The position is a tensor on the device, so one program serves all of them, and the drawn
    token stays there as the next one's input.
    """

    def __init__(self, model, temperature):
        self.model = model.eval()
        self.temperature = temperature
        self.cache = model.new_cache()
        self.position = kiln.tensor(0)

    @kiln.jit
    def feed(self, token):
        """The token drawn after one more, both (1,)."""
        with kiln.no_grad():
            logits = self.model.decode(token, self.position, self.cache) / self.temperature
            self.position.assign(self.position + 1)
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
            if fed == 0:
                self.position.assign(0)
            for token in waiting:
                drawn = self.feed(token)
            fed += len(waiting)
            written.append(drawn)
            waiting = [drawn]
        return [token.item() for token in written[len(prompt) :]]
