import uPlot from 'uplot';
import { Losses } from './losses.js';

const height = 220;
// Distances of marks on the axis of steps, which are whole.
const wholeSteps = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

/** A chart of the loss by step, for training and, now and then, validation. It follows its element's width and the colour scheme. */
export class LossChart {
  readonly #target: HTMLElement;
  readonly #losses = new Losses();
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
    this.#losses.addTraining(step, loss);
    this.#draw();
  }

  addValidation(step: number, loss: number): void {
    this.#losses.addValidation(step, loss);
    this.#draw();
  }

  /** Describes the chart in one sentence. */
  text(): string {
    return this.#losses.text();
  }

  clear(): void {
    this.#losses.clear();
    this.#plot?.destroy();
    this.#plot = undefined;
  }

  /** Draws at most once per frame of the screen, however fast the steps are. */
  #draw(): void {
    if (this.#drawing !== 0) return;
    this.#drawing = requestAnimationFrame(() => {
      this.#drawing = 0;
      if (this.#losses.isEmpty) return;
      const { training, validation } = this.#losses;
      const data = uPlot.join([training, validation].map(({ steps, losses }) => [steps, losses]));
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
