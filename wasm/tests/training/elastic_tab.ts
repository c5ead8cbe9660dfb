// The script of a page that `ringlet serve` serves: trains with the native ranks until the end.
import { newDiary, train } from './elastic_program.js';

const diary = newDiary();
Object.assign(globalThis, { diary });
// The package lies beside the page.
const { ElasticTrainer } = (await import(new URL('ringlet/index.js', location.href).href)) as typeof import('../../src/index.js');
const [steps = 0, pause = 0] = (document.querySelector('meta[name=plan]')?.getAttribute('content') ?? '').split(' ').map(Number);
train(ElasticTrainer, { url: location.href }, steps, pause, diary).then(
  () => (diary.end = 'well'),
  (error: unknown) => (diary.end = String(error)),
);
