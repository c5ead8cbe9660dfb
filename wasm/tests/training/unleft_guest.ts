// A guest that does not leave its group when that has failed: node unleft_guest.mjs LINK WORKER. It tells what it is told, and leaves when
// nothing else keeps Node running.
import type { RingletError } from '../../src/node.js';

const { join } = (await import('ringlet' as string)) as typeof import('../../src/node.js');
const [url = '', worker] = process.argv.slice(2);
const tell = ({ code, rank }: RingletError): void => console.log(code, rank);
const group = await join({ url, dedicatedWorker: worker === 'true' });
console.log('joined');
await group.recv([1], 'f32', 0).catch(tell);
process.once('beforeExit', () => {
  void group
    .barrier()
    .catch(tell)
    .then(() => group.leave())
    .then(() => console.log('left'));
});
