"""All ranks fit one line to noisy points, each with points of its own. Run it with: ringlet launch -n 4 -- python numpy_training.py"""

import numpy as np

import ringlet

world = ringlet.init()
random = np.random.default_rng(world.rank())  # each rank has samples of its own
inputs = random.normal(size=(500, 3))
targets = inputs @ [1.0, -2.0, 0.5] + 4.0 + 0.01 * random.normal(size=500)

weights, bias = np.zeros(3), np.zeros(())  # and all have the same parameters
for step in range(200):
    errors = inputs @ weights + bias - targets
    gradients = [inputs.T @ errors / len(errors), errors.mean()]
    works = [world.all_mean_async(gradient) for gradient in gradients]  # both are under way at once
    weights -= 0.1 * works[0].wait()
    bias -= 0.1 * works[1].wait()

same = (world.all_max(weights) == world.all_min(weights)).all()
print(f"rank {world.rank()} of {world.size()}: {weights.round(2)} {bias.round(2)}, {'the same' if same else 'NOT the same'} on all ranks")
