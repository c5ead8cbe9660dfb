// The script of a page: trains with the native ranks that serve it, or that are where its link says (?at=host:port), until the end.
import { newDiary, train } from './elastic_program.js';

const diary = newDiary();
Object.assign(globalThis, { diary });
// The package lies beside the page.
const { ElasticTrainer } = (await import(new URL('ringlet/index.js', location.href).href)) as typeof import('../../src/index.js');
const [steps = 0, pause = 0] = (document.querySelector('meta[name=plan]')?.getAttribute('content') ?? '').split(' ').map(Number);
const at = new URLSearchParams(location.search).get('at');
const url = at === null ? location.href : `ws://${at}/${location.hash}`;
const begun = (trainer: object): unknown => Object.assign(globalThis, { trainer });
train(ElasticTrainer, { url }, steps, pause, diary, begun).then(
  () => (diary.end = 'well'),
  (error: unknown) => (diary.end = String(error)),
);
