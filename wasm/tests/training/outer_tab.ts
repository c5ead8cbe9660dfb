// The script of a page that `ringlet serve` serves: trains with few averages, beside native ranks that do so.
import { OuterProgram } from './outer_program.js';

// The package lies beside the page.
const { OuterTrainer } = (await import(new URL('ringlet/index.js', location.href).href)) as typeof import('../../src/index.js');
const [averages = 0] = (document.querySelector('meta[name=plan]')?.getAttribute('content') ?? '').split(' ').map(Number);
const { inWorker = false } = globalThis as { inWorker?: boolean };
const program = new OuterProgram(OuterTrainer, { url: location.href, dedicatedWorker: inWorker }, undefined, 0);
const { diary } = program;
Object.assign(globalThis, { diary, hold: () => program.hold() });
program.run(averages).then(
  () => (diary.end = 'well'),
  (error: unknown) => (diary.end = String(error)),
);
