"""Distributions: recorded_functions.npz has PyTorch's densities, entropies, moments and divergences, and their gradients."""


def distributions(torch):
    """Returns, by name, the class, its parameters, values, and options."""
    d, tensor = torch.distributions, torch.tensor
    a, b, c = tensor([0.5, 1.5, 3.0]), tensor([2.0, 0.7, 1.2]), tensor([0.2, 0.5, 0.9])
    rows, loc = tensor([[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]]), tensor([-1.0, 0.0, 2.0])
    covariance = tensor([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 1.5]])
    return {
        "Normal": (d.Normal, {"loc": loc, "scale": b}, tensor([[0.3, -2.0, 1.0], [1.0, 0.0, 5.0]]), {}),
        "Normal of numbers": (d.Normal, {"loc": tensor(0.0), "scale": tensor(1.0)}, tensor(0.5), {}),
        "LogNormal": (d.LogNormal, {"loc": loc, "scale": b}, a, {}),
        "Laplace": (d.Laplace, {"loc": loc, "scale": b}, tensor([0.3, -2.0, 1.0]), {}),
        "Uniform": (d.Uniform, {"low": loc, "high": loc + b}, loc + b * c, {}),
        "Exponential": (d.Exponential, {"rate": b}, a, {}),
        "Gamma": (d.Gamma, {"concentration": a, "rate": b}, c, {}),
        "Chi2": (d.Chi2, {"df": b}, a, {}),
        "Beta": (d.Beta, {"concentration1": a, "concentration0": b}, c, {}),
        "Dirichlet": (d.Dirichlet, {"concentration": rows * 10}, tensor([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]), {}),
        "Bernoulli": (d.Bernoulli, {"probs": c}, tensor([1.0, 0.0, 1.0]), {}),
        "Bernoulli of logits": (d.Bernoulli, {"logits": loc}, tensor([1.0, 0.0, 1.0]), {}),
        "Geometric": (d.Geometric, {"probs": c}, tensor([0.0, 2.0, 1.0]), {}),
        "Geometric of logits": (d.Geometric, {"logits": loc}, tensor([0.0, 2.0, 1.0]), {}),
        "Poisson": (d.Poisson, {"rate": b}, tensor([0.0, 3.0, 1.0]), {}),
        "Binomial": (d.Binomial, {"probs": c}, tensor([0.0, 3.0, 5.0]), {"total_count": 5}),
        "Categorical": (d.Categorical, {"probs": rows}, tensor([2, 0]), {}),
        "Categorical of logits": (d.Categorical, {"logits": rows * 3}, tensor([[2, 0], [1, 1]]), {}),
        "OneHotCategorical": (d.OneHotCategorical, {"logits": rows}, tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), {}),
        "MultivariateNormal": (d.MultivariateNormal, {"loc": loc, "covariance_matrix": covariance}, tensor([[0.3, -2.0, 1.0]] * 2), {}),
        "MultivariateNormal of a factor": (d.MultivariateNormal, {"loc": loc, "scale_tril": torch.linalg.cholesky(covariance)}, a, {}),
    }


def cases(torch):
    """Returns the cases by name."""
    d, tensor = torch.distributions, torch.tensor
    found = {}

    def measured(kind, parameters, value, options):
        def case():
            results = []
            for name in ("log_prob", "entropy", "cdf", "icdf"):
                leaves = {key: parameter.clone().requires_grad_() for key, parameter in parameters.items()}
                made = kind(**leaves, **options)
                try:
                    result = (getattr(made, name)(value) if name in ("log_prob", "cdf") else getattr(made, name)() if name == "entropy"
                              else made.icdf(tensor(0.3)))
                except NotImplementedError:
                    continue
                if type(result).__name__ == "type" or (name == "cdf" and "Gamma Chi2".find(kind.__name__) >= 0):
                    continue
                slopes = torch.autograd.grad(result.sum(), list(leaves.values()), allow_unused=True)
                results += [result, *[0 if slope is None else slope for slope in slopes]]
            made = kind(**parameters, **options)
            for name in ("mean", "variance", "stddev", "mode", "batch_shape", "event_shape", "has_rsample"):
                try:
                    moment = getattr(made, name)
                except NotImplementedError:
                    continue
                if name == "has_rsample" and kind.__name__ in ("Beta", "Dirichlet"):
                    continue
                results.append(moment)
            wide = made.expand((2, *made.batch_shape))
            results += [wide.batch_shape, wide.log_prob(value), made.perplexity() if
                        kind.__name__ not in ("Poisson",) else 0, made.sample().shape, made.sample((2, 3)).shape,
                        made.sample((2, 3)).dtype == value.dtype]
            return results

        return case

    for name, given in distributions(torch).items():
        found[name] = measured(*given)

    def divergence(one, other):
        def case():
            leaves = [[parameter.clone().requires_grad_() for parameter in given.values()] for _, given in (one, other)]
            p, q = (kind(**dict(zip(given, part))) for (kind, given), part in zip((one, other), leaves))
            result = d.kl_divergence(p, q)
            return [result, torch.autograd.grad(result.sum(), [leaf for part in leaves for leaf in part])]

        return case

    a, b, c = tensor([0.5, 1.5, 3.0]), tensor([2.0, 0.7, 1.2]), tensor([0.2, 0.5, 0.9])
    rows = tensor([[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]])
    matrix = tensor([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 1.5]])
    pairs = {
        "Normal": ((d.Normal, {"loc": a, "scale": b}), (d.Normal, {"loc": c, "scale": a})),
        "LogNormal": ((d.LogNormal, {"loc": a, "scale": b}), (d.LogNormal, {"loc": c, "scale": a})),
        "Laplace": ((d.Laplace, {"loc": a, "scale": b}), (d.Laplace, {"loc": c, "scale": a})),
        "Uniform": ((d.Uniform, {"low": a, "high": a + b}), (d.Uniform, {"low": a - 1, "high": a + b + c})),
        "Uniform and Normal": ((d.Uniform, {"low": a, "high": a + b}), (d.Normal, {"loc": c, "scale": a})),
        "Exponential": ((d.Exponential, {"rate": a}), (d.Exponential, {"rate": b})),
        "Exponential and Gamma": ((d.Exponential, {"rate": a}), (d.Gamma, {"concentration": b, "rate": c})),
        "Gamma and Exponential": ((d.Gamma, {"concentration": b, "rate": c}), (d.Exponential, {"rate": a})),
        "Gamma": ((d.Gamma, {"concentration": a, "rate": b}), (d.Gamma, {"concentration": b, "rate": c})),
        "Beta": ((d.Beta, {"concentration1": a, "concentration0": b}), (d.Beta, {"concentration1": b, "concentration0": c})),
        "Dirichlet": ((d.Dirichlet, {"concentration": rows * 9}), (d.Dirichlet, {"concentration": rows * 3 + 1})),
        "MultivariateNormal": ((d.MultivariateNormal, {"loc": a, "covariance_matrix": matrix}),
                               (d.MultivariateNormal, {"loc": b, "covariance_matrix": matrix + torch.eye(3)})),
        "Bernoulli": ((d.Bernoulli, {"probs": c}), (d.Bernoulli, {"logits": a})),
        "Geometric": ((d.Geometric, {"probs": c}), (d.Geometric, {"logits": a})),
        "Poisson": ((d.Poisson, {"rate": a}), (d.Poisson, {"rate": b})),
        "Categorical": ((d.Categorical, {"probs": rows}), (d.Categorical, {"logits": rows * 3})),
        "OneHotCategorical": ((d.OneHotCategorical, {"probs": rows}), (d.OneHotCategorical, {"logits": rows * 3})),
    }
    for name, (one, other) in pairs.items():
        found[f"divergence of {name}"] = divergence(one, other)

    def independent():
        one, other = (d.Independent(d.Normal(loc, b.expand(2, 3)), 1) for loc in (rows, rows * 2))
        return [one.log_prob(rows + 1), one.entropy(), one.mean, one.batch_shape, one.event_shape, one.sample((4,)).shape,
                d.kl_divergence(one, other), one.expand((5, 2)).batch_shape, one.has_rsample]

    def flow_of_samples():
        results = []
        for kind, given in ((d.Normal, {"loc": a, "scale": b}), (d.Uniform, {"low": a, "high": a + b}), (d.Laplace, {"loc": a, "scale": b}),
                            (d.Exponential, {"rate": b}), (d.LogNormal, {"loc": a, "scale": b})):
            leaves = {key: value.clone().requires_grad_() for key, value in given.items()}
            drawn = kind(**leaves).rsample((2,))
            torch.manual_seed(0)
            results += [drawn.requires_grad, kind(**leaves).sample().requires_grad]
        # The gradient of a sample is known where the sample is.
        loc, scale = a.clone().requires_grad_(), b.clone().requires_grad_()
        drawn = d.Normal(loc, scale).rsample()
        slopes = torch.autograd.grad(drawn.sum(), [loc, scale])
        return [*results, slopes[0], (slopes[1] * scale + loc - drawn).abs() < 1e-5]

    def supports():
        return [d.Bernoulli(c).enumerate_support(), d.Categorical(rows).enumerate_support(), d.Categorical(rows).enumerate_support(False),
                d.Uniform(a, b + 9).support.check(tensor(2.0)), d.Categorical(rows).support.check(tensor([3, 1])),
                d.constraints.simplex.check(rows), d.constraints.positive.check(a - 1), d.constraints.lower_cholesky.check(matrix),
                d.Normal(0.0, 1.0).log_prob(tensor(1.0)), d.Normal(0, 1).mean, d.Categorical(logits=rows).probs, d.Categorical(rows * 2).logits,
                d.Bernoulli(logits=a).probs, d.Bernoulli(c).logits, d.Uniform(0.0, 1.0, validate_args=False).log_prob(tensor(2.0)),
                d.kl_divergence(d.Categorical(tensor([0.0, 1.0])), d.Categorical(tensor([0.5, 0.5]))),
                d.kl_divergence(d.Uniform(0.0, 2.0), d.Uniform(0.0, 1.0)), d.Categorical(tensor([0.0, 1.0])).entropy(),
                isinstance(d.Normal(0.0, 1.0), d.ExponentialFamily), isinstance(d.Normal(0.0, 1.0), d.Distribution)]

    def own_divergence():
        class Mine(d.Normal):
            pass

        @d.register_kl(Mine, d.Normal)
        def _(p, q):
            return p.loc * 0 + 7

        return [d.kl_divergence(Mine(a, b), d.Normal(a, b)), d.kl_divergence(d.Normal(a, b), Mine(a, b))]

    def transformed():
        results = []
        t = d
        for transforms, values in (
                ([t.TanhTransform()], c), ([t.AffineTransform(1.0, -2.0)], a), ([t.ExpTransform()], a), ([t.SigmoidTransform()], c),
                ([t.SoftplusTransform()], a), ([t.AffineTransform(a, b), t.TanhTransform(cache_size=1)], c - 0.5),
                ([t.ComposeTransform([t.ExpTransform(), t.AffineTransform(1.0, 2.0)])], a + 2), ([t.ExpTransform(), t.PowerTransform(0.5)], a), ([], a),
                ([t.identity_transform], a)):
            loc, scale = a.clone().requires_grad_(), b.clone().requires_grad_()
            made = d.TransformedDistribution(d.Normal(loc, scale), transforms)
            result = made.log_prob(values)
            results += [result, torch.autograd.grad(result.sum(), [loc, scale]), made.cdf(values), made.icdf(c), made.sample((2,)).shape,
                        made.batch_shape, made.has_rsample]
        rows = d.TransformedDistribution(d.Independent(d.Normal(a, b), 1), [d.TanhTransform(cache_size=1)])
        drawn = rows.rsample()
        return [*results, rows.log_prob(c), rows.event_shape, torch.isfinite(rows.log_prob(drawn)), rows.expand((4,)).sample().shape,
                d.ExpTransform().inv(b), d.TanhTransform().inv.log_abs_det_jacobian(c, c.atanh()), isinstance(d.ExpTransform(), d.Transform)]

    found.update({"Independent": independent, "transformed": transformed, "flow of samples": flow_of_samples, "supports": supports, "own divergence": own_divergence})
    return found
