import type { News, Numbers, TrainingFailure } from '../news.js';
import { LossChart } from './chart.js';
import { drawRing, ringText, type RingPicture } from './ring.js';
import { bytesText, explain, explainReturn, numberText } from './words.js';

type State = 'idle' | 'joining' | 'waiting' | 'training' | 'finished' | 'failed';

const stateNames: Readonly<Record<State, string>> = {
  idle: 'not joined',
  joining: 'joining',
  waiting: 'waiting',
  training: 'training',
  finished: 'finished',
  failed: 'stopped',
};

/** Everything that the user sees: what the Worker reports, in words, numbers, a drawing and a chart. It only decides how to display it. */
export class PageView {
  readonly #chart: LossChart;
  #picture: RingPicture | undefined;
  #state: State = 'idle';
  #steps = 0;
  #elastic = false;

  constructor() {
    this.#chart = new LossChart(byId('chart'));
  }

  get #takesPart(): boolean {
    return this.#state === 'joining' || this.#state === 'waiting' || this.#state === 'training';
  }

  get isTraining(): boolean {
    return this.#state === 'training';
  }

  /** Whether leaving the page now would end the training of the other ranks. */
  get isNeeded(): boolean {
    return this.isTraining && !this.#elastic;
  }

  /** Asks for the token; `headline` and `detail` say why. */
  askForToken(headline: string, detail: string): void {
    this.#say(headline, detail);
    show('again', false);
    show('token-form', true);
    byId<HTMLInputElement>('token').focus();
  }

  /** Returns to the initial state, for another try. */
  reset(): void {
    this.#chart.clear();
    this.#picture = undefined;
    for (const id of ['token-form', 'again', 'steps', 'place', 'progress', 'numbers', 'sample']) show(id, false);
    this.#set('joining');
    this.#say('Joining', 'Looking for the group.');
  }

  /** Shows a remark on what this tab needs to take part. It stays until the next one, or the end; an empty one removes it. */
  note(text: string): void {
    write('note', text);
    show('note', text !== '' && this.#takesPart);
  }

  /** Shows the news. `offline` says that the device had no network shortly before. */
  tell(news: News, offline: boolean): void {
    switch (news.kind) {
      case 'connecting':
        this.#set('joining');
        return this.#say('Joining', 'Looking for the group.');
      case 'waiting':
        this.#set('waiting');
        return this.#say(`${news.here} of ${news.size} are here`, 'Training begins when all have come. Leave this tab open and in front.');
      case 'knocking':
        this.#set('waiting');
        return this.#say('The training is there', 'This tab comes in as soon as the others are ready for it. Leave it open and in front.');
      case 'left':
        return this.#left(news.failure, offline);
      case 'joined':
        this.#elastic = news.elastic;
        return this.#joined({ order: news.order, guests: news.guests, mine: news.rank, lost: -1 }, news.placement);
      case 'prepared':
        return this.#prepared(news);
      case 'step':
        return this.#step(news.step, news.loss, news.numbers);
      case 'validation':
        this.#chart.addValidation(news.step, news.loss);
        return this.#describeChart();
      case 'text':
        show('sample', true);
        return write('text', news.text);
      case 'finished':
        this.#set('finished');
        // With few averages a slow tab leaves the last steps to the others.
        this.#showStep(this.#steps);
        return this.#say('Finished', `All ranks hold the same model (${news.parameterHash}). You may close this tab.`);
      case 'failed':
        return this.#failed(news.failure, offline);
    }
  }

  #joined(picture: RingPicture, placement: string): void {
    this.#picture = picture;
    write('placement-text', placement);
    show('place', true);
    this.#drawRing();
    this.#set('training');
    this.#say('Everybody is here', 'The text and the settings are on their way.');
  }

  #prepared({ step, steps, batch, parameters, averageEvery }: Extract<News, { kind: 'prepared' }>): void {
    this.#steps = steps;
    byId<HTMLProgressElement>('steps').max = steps;
    this.#showStep(step);
    this.#describeChart();
    for (const id of ['steps', 'progress', 'numbers']) show(id, true);
    const averages = averageEvery > 0 ? `, an average every ${averageEvery} steps` : '';
    const plan = `A model of ${numberText(parameters)} parameters, ${steps} steps of ${batch} samples${averages}.`;
    this.#say('Training', `${plan} Keep this tab in front.`);
  }

  #step(step: number, loss: number, numbers: Numbers): void {
    this.#showStep(step);
    this.#chart.addTraining(step, loss);
    this.#describeChart();
    write('tokens', numberText(numbers.tokensPerSecond));
    write('share', `${numbers.samples} of ${numbers.batch}`);
    write('communication', `${Math.round(100 * numbers.communicationShare)} %`);
    write('sent', bytesText(numbers.sent));
    write('received', bytesText(numbers.received));
  }

  #showStep(step: number): void {
    byId<HTMLProgressElement>('steps').value = step;
    write('step', `${step} of ${this.#steps}`);
  }

  #left(failure: TrainingFailure, offline: boolean): void {
    const { headline, advice } = explainReturn(failure, this.#picture?.mine ?? -1, offline);
    this.#set('joining');
    this.#say(headline, `${advice} (${failure.message})`);
  }

  #failed(failure: TrainingFailure, offline: boolean): void {
    const words = explain(failure, this.#picture?.mine ?? -1, offline);
    this.#set('failed');
    if (this.#picture !== undefined && failure.rank >= 0) {
      this.#picture = { ...this.#picture, lost: failure.rank };
      this.#drawRing();
    }
    this.#say(words.headline, `${words.advice} (${failure.message})`);
    if (words.askForToken) this.askForToken(words.headline, words.advice);
    else show('again', words.mayTryAgain);
  }

  #drawRing(): void {
    if (this.#picture === undefined) return;
    drawRing(byId('ring'), this.#picture);
    write('ring-text', ringText(this.#picture));
  }

  #describeChart(): void {
    const text = this.#chart.text();
    write('chart-text', text);
    byId('chart').setAttribute('aria-label', text);
  }

  #set(state: State): void {
    this.#state = state;
    for (const id of ['state', 'news']) byId(id).dataset['state'] = state;
    write('state', stateNames[state]);
    // The note from before this tab took part is shown now.
    this.note(this.#takesPart ? (byId('note').textContent ?? '') : '');
    document.title = `${stateNames[state]} – Ringlet`;
  }

  #say(headline: string, detail: string): void {
    write('headline', headline);
    write('detail', detail);
  }
}

function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no element '${id}'`);
  return found as T;
}

function show(id: string, visible: boolean): void {
  byId(id).hidden = !visible;
}

// Unchanged text is not written again, since that would make screen readers repeat it.
function write(id: string, text: string): void {
  const element = byId(id);
  if (element.textContent !== text) element.textContent = text;
}
