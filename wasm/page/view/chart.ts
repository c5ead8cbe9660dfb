import uPlot from 'uplot';

const height = 220;
// Distances of marks on the axis of steps, which are whole.
const wholeSteps = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

/** A chart of the loss by step, for training and, now and then, validation. It follows its element's width and the colour scheme. */
export class LossChart {
  readonly #target: HTMLElement;
  readonly #steps: number[] = [];
  readonly #training: (number | null)[] = [];
  readonly #validation: (number | null)[] = [];
  #plot: uPlot | undefined;
  #drawing = 0;

  constructor(target: HTMLElement) {
    this.#target = target;
    new ResizeObserver(() => this.#plot?.setSize({ width: target.clientWidth, height })).observe(target);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.#plot?.destroy();
      this.#plot = undefined;
      this.#draw();
    });
  }

  addTraining(step: number, loss: number): void {
    this.#training[this.#place(step)] = loss;
    this.#draw();
  }

  addValidation(step: number, loss: number): void {
    this.#validation[this.#place(step)] = loss;
    this.#draw();
  }

  /** Describes the chart in one sentence. */
  text(): string {
    const losses = this.#training.filter((loss) => loss !== null);
    const validation = this.#validation.filter((loss) => loss !== null);
    if (losses.length === 0) return 'No loss is known yet.';
    const training = `Loss of the training: ${losses[0]?.toFixed(3)} at first, ${losses.at(-1)?.toFixed(3)} now.`;
    return validation.length === 0 ? training : `${training} Of the validation: ${validation.at(-1)?.toFixed(3)}.`;
  }

  clear(): void {
    for (const row of [this.#steps, this.#training, this.#validation]) row.length = 0;
    this.#plot?.destroy();
    this.#plot = undefined;
  }

  /** Returns the column of a step, which becomes the last one: a group that has gone back to an earlier state takes steps again. */
  #place(step: number): number {
    while ((this.#steps.at(-1) ?? step) > step) for (const row of [this.#steps, this.#training, this.#validation]) row.pop();
    if (this.#steps.at(-1) !== step) {
      this.#steps.push(step);
      this.#training.push(null);
      this.#validation.push(null);
    }
    return this.#steps.length - 1;
  }

  /** Draws at most once per frame of the screen, however fast the steps are. */
  #draw(): void {
    if (this.#drawing !== 0) return;
    this.#drawing = requestAnimationFrame(() => {
      this.#drawing = 0;
      if (this.#steps.length === 0) return;
      const data: uPlot.AlignedData = [this.#steps, this.#training, this.#validation];
      if (this.#plot === undefined) this.#plot = new uPlot(this.#options(), data, this.#target);
      else this.#plot.setData(data);
    });
  }

  #options(): uPlot.Options {
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string): string => style.getPropertyValue(name).trim();
    const axis = { stroke: colour('--quiet'), grid: { stroke: colour('--line'), width: 1 }, ticks: { stroke: colour('--line'), width: 1 } };
    return {
      width: this.#target.clientWidth,
      height,
      scales: { x: { time: false } },
      cursor: { drag: { x: false, y: false } },
      legend: { live: false },
      axes: [
        { ...axis, incrs: wholeSteps },
        { ...axis, size: 48 },
      ],
      series: [
        { label: 'step' },
        { label: 'training', stroke: colour('--accent'), width: 2, points: { show: false }, spanGaps: true },
        {
          label: 'validation',
          stroke: colour('--second'),
          width: 2,
          points: { show: true, size: 6, fill: colour('--second') },
          spanGaps: true,
        },
      ],
    };
  }
}
