// The script of a page that `ringlet serve` serves: counts steps with the native ranks in a loop of its own.
import { newDiary } from './elastic_program.js';
import { OwnLoop } from './own_loop.js';

const diary = newDiary();
Object.assign(globalThis, { diary });
// The package lies beside the page.
const { join } = (await import(new URL('ringlet/index.js', location.href).href)) as typeof import('../../src/index.js');
const loop = new OwnLoop(await join({ url: location.href }), diary);
Object.assign(globalThis, { revoke: () => loop.world.revoke() });
loop.run().then(
  () => (diary.end = 'well'),
  (error: unknown) => (diary.end = String(error)),
);
