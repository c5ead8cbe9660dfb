"""Each rank trains alone with torch's AdamW; every few steps the ranks average by how much their parameters have changed (DiLoCo).

    ringlet launch -n 2 -- python torch_diloco.py
    ringlet launch --elastic 1:4 -- python torch_diloco.py
    ringlet run --group home -- python torch_diloco.py --by-speed
"""

import argparse

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import ringlet


def teacher(inputs):
    return torch.tanh(inputs @ torch.linspace(-1, 1, 8)) + 0.5 * inputs[:, 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--inner-steps", type=int, default=25, help="steps that a rank takes alone between two averages")
    parser.add_argument("--by-speed", action="store_true", help="let slower ranks take fewer steps instead of waiting for them")
    parser.add_argument("--batch", type=int, default=32, help="samples of a rank's step")
    options = parser.parse_args()

    world = ringlet.init()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)  # this rank's own
    generator = torch.Generator().manual_seed(1 + world.rank())  # and its own samples

    def inner(step):
        inputs = torch.randn(options.batch, 8, generator=generator)
        loss = F.mse_loss(model(inputs).squeeze(1), teacher(inputs))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step.number % 200 == 0:
            print(f"rank {step.rank}: step {step.number}, loss {loss.item():.3f}", flush=True)
        return len(inputs)

    parameters = dict(model.named_parameters())
    trainer = ringlet.OuterTrainer(
        world, parameters, inner_steps=options.inner_steps, by_speed=options.by_speed, learning_rate=0.7, momentum=0.5, wire="bf16"
    )
    trainer.run(inner, steps=options.steps)

    world = trainer.world()  # of an elastic group, those that are left
    values = np.concatenate([values.detach().numpy().ravel() for values in parameters.values()])
    same = (world.all_max(values) == world.all_min(values)).all()
    held_out = torch.randn(4096, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        loss = F.mse_loss(model(held_out).squeeze(1), teacher(held_out)).item()
    print(
        f"rank {world.rank()} of {world.size()}: held-out loss {loss:.4f}, parameters {'the same' if same else 'NOT the same'} on all ranks"
    )


if __name__ == "__main__":
    main()
