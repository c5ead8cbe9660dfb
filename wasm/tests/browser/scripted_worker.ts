import type { News, Numbers, TrainingFailure } from '../../page/news.js';

const numbers = (step: number): Numbers => ({
  tokensPerSecond: 12_345 + step,
  samples: 3,
  batch: 16,
  communicationShare: 0.125,
  sent: step * 1_234_567,
  received: step * 1_234_560,
});

const training: News[] = [
  { kind: 'connecting' },
  { kind: 'waiting', here: 1, size: 4 },
  { kind: 'waiting', here: 2, size: 4 },
  {
    kind: 'joined',
    rank: 2,
    size: 4,
    guests: 2,
    elastic: false,
    order: [0, 2, 1, 3],
    placement: '2 native ranks, 2 browsers: large all-reduces by hub',
  },
  { kind: 'prepared', step: 0, steps: 200, batch: 16, parameters: 112_896, averageEvery: 25 },
  ...Array.from({ length: 120 }, (_, at): News[] => {
    const step = at + 1;
    const news: News[] = [{ kind: 'step', step, loss: 2 + 2.5 * Math.exp(-step / 30) + 0.1 * Math.sin(step), numbers: numbers(step) }];
    return step % 40 === 0 ? [...news, { kind: 'validation', step, loss: 2.1 + 2.4 * Math.exp(-step / 30) }] : news;
  }).flat(),
  { kind: 'text', text: 'KING:\nWhat say you, to the crown of him that stood?\n\nSecond Lord:\nMy lord, the sea is up.\n' },
];

const failed = (failure: Partial<TrainingFailure>): News => ({
  kind: 'failed',
  failure: { code: 'peer_lost', message: 'the link to rank 1 broke', rank: -1, during: 'training', slept: false, ...failure },
});

/** The messages that the scripted Worker sends, by the token that it is given. */
export const scripts: Readonly<Record<string, News[]>> = {
  waiting: training.slice(0, 3),
  training,
  finished: [...training, { kind: 'finished', parameterHash: '0123456789abcdef' }],
  late: [...training.slice(0, 5), { kind: 'prepared', step: 120, steps: 200, batch: 16, parameters: 112_896, averageEvery: 0 }],
  // The group has gone back to a checkpoint of step 80.
  back: [...training, { kind: 'step', step: 81, loss: 9, numbers: numbers(81) }],
  wrong: [{ kind: 'connecting' }, failed({ code: 'authentication', message: 'the token is not the one of this world', during: 'looking' })],
  complete: [{ kind: 'connecting' }, failed({ code: 'invalid_argument', message: 'the group is complete', during: 'looking' })],
  crashes: training,
  lost: [...training, failed({ rank: 1 })],
};

/** The source of a Worker that sends these messages. */
export const scriptedWorker = `
  const scripts = ${JSON.stringify(scripts)};
  addEventListener('message', ({ data }) => {
    if (data.token === 'crashes') setTimeout(() => { throw new RangeError('out of memory'); });
    for (const news of scripts[data.token] ?? scripts.wrong) postMessage(news);
  });
`;
