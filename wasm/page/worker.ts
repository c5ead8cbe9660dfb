import makeModule from 'ringlet-module';
import { browserPlatform } from '../src/browser_platform.js';
import { LocalEngine } from '../src/core/local_engine.js';
import type { Progress } from '../src/engine.js';
import { toFailure } from '../src/errors.js';
import { Group } from '../src/group.js';
import { requestOf } from '../src/join.js';
import type { WorkerScope } from '../src/remote/worker_channel.js';
import type { News, Order, Phase } from './news.js';
import { Trainer } from './trainer.js';
import type { TrainerModule } from './trainer_module.js';
import { train } from './training.js';

const scope = self as unknown as WorkerScope;
const tell = (news: News): void => scope.postMessage(news, []);
const tickMs = 1000;
const sleepMs = 5000;
// This can be short, because the page was loaded from the same rank a moment ago.
const connectTimeout = 20_000;

let lastTick = performance.now();
setInterval(() => (lastTick = performance.now()), tickMs);

scope.addEventListener('message', (event: MessageEvent<Order>) => void run(event.data));

async function run(order: Order): Promise<void> {
  let during: Phase = 'looking';
  const relay = (progress: Progress): void => {
    if (progress.kind === 'waiting') during = 'waiting';
    if (progress.kind === 'connecting' || progress.kind === 'waiting') tell(progress);
  };
  try {
    const engine = await LocalEngine.make(browserPlatform, makeModule, new URL('train_text.wasm', self.location.href), false, relay);
    const membership = await engine.join(requestOf(browserPlatform, { ...order, connectTimeout }));
    during = 'training';
    const { rank, size } = membership;
    const group = new Group(engine, membership);
    const { ring, text } = await group.placement();
    tell({ kind: 'joined', rank, size, guests: engine.seat.guests, order: ring, placement: text });
    const trainer = new Trainer(engine.module as TrainerModule, engine.memory, rank, size);
    await train(group, trainer, tell);
    await engine.close();
    tell({ kind: 'finished', parameterHash: trainer.hash });
  } catch (error) {
    // Measured before anything else runs, because the timer has not yet ticked in a Worker that was suspended.
    const slept = performance.now() - lastTick > sleepMs;
    tell({ kind: 'failed', failure: { ...toFailure(error), during, slept } });
  }
}
