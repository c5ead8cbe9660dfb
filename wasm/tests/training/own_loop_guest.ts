// A guest of a process of its own: node own_loop_guest.mjs LINK. It prints each step that it counts.
import { newDiary } from './elastic_program.js';
import { OwnLoop } from './own_loop.js';

const { join } = (await import('ringlet' as string)) as typeof import('../../src/node.js');
const [url = ''] = process.argv.slice(2);
const diary = newDiary();
const loop = new OwnLoop(await join({ url, name: 'another process' }), diary);
setInterval(() => console.log(diary.journal.length), 5).unref();
await loop.run();
