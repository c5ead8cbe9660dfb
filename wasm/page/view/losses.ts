// More points than a chart has columns to show them.
const capacity = 2048;

/** One loss by step: the first and the last are as they were told, and those in between are as many as can be drawn. */
class Curve {
  readonly steps: number[] = [];
  readonly losses: number[] = [];
  // The least distance between two points.
  #spacing = 0;

  add(step: number, loss: number): void {
    this.cut(step);
    // The last point moves on until it is as far from the one before as the others are.
    if (this.steps.length > 1 && this.#distanceAt(this.steps.length - 1) < this.#spacing) this.#drop();
    this.steps.push(step);
    this.losses.push(loss);
    if (this.steps.length === capacity) this.#thinOut();
  }

  /** Forgets what is known of this step and of those after it. */
  cut(step: number): void {
    while (this.steps.length > 0 && (this.steps.at(-1) as number) >= step) this.#drop();
  }

  clear(): void {
    this.steps.length = this.losses.length = this.#spacing = 0;
  }

  #distanceAt(index: number): number {
    return (this.steps[index] as number) - (this.steps[index - 1] as number);
  }

  #drop(): void {
    this.steps.pop();
    this.losses.pop();
  }

  /** Leaves about half of the points, at equal distances. */
  #thinOut(): void {
    const [steps, losses] = [this.steps.splice(0), this.losses.splice(0)];
    const [first, last] = [steps[0] as number, steps.at(-1) as number];
    this.#spacing = (2 * (last - first)) / capacity;
    steps.forEach((step, index) => {
      const isFar = step - (this.steps.at(-1) ?? -Infinity) >= this.#spacing;
      if (!isFar && step !== last) return;
      this.steps.push(step);
      this.losses.push(losses[index] as number);
    });
  }
}

/** The losses of a run, of which not more is kept than a chart can show, however long it is. */
export class Losses {
  readonly training = new Curve();
  readonly validation = new Curve();

  // A group that has gone back to an earlier state takes steps again.
  addTraining(step: number, loss: number): void {
    this.validation.cut(step + 1);
    this.training.add(step, loss);
  }

  addValidation(step: number, loss: number): void {
    this.training.cut(step + 1);
    this.validation.add(step, loss);
  }

  clear(): void {
    this.training.clear();
    this.validation.clear();
  }

  get isEmpty(): boolean {
    return this.training.steps.length === 0 && this.validation.steps.length === 0;
  }

  /** Describes them in one sentence. */
  text(): string {
    const { losses } = this.training;
    if (losses.length === 0) return 'No loss is known yet.';
    const training = `Loss of the training: ${losses[0]?.toFixed(3)} at first, ${losses.at(-1)?.toFixed(3)} now.`;
    const validation = this.validation.losses.at(-1);
    return validation === undefined ? training : `${training} Of the validation: ${validation.toFixed(3)}.`;
  }
}
