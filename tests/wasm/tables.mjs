// Loads the package's copy of the library's tables, wasm/src/tables.ts, as a module.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../../wasm/package.json', import.meta.url));
const source = readFileSync(new URL('../../wasm/src/tables.ts', import.meta.url), 'utf8');
const { code } = require('esbuild').transformSync(source, { loader: 'ts' });
const tables = await import(`data:text/javascript,${encodeURIComponent(code)}`);

export const { blockFormats, collectiveForms, reduceOps } = tables;
/** The number of the first format of blocks among those of the wires. */
export const firstBlocks = 256;
export const dtypes = tables.dtypeTable.map(({ name }) => name);
export const sizes = tables.dtypeTable.map(({ bytes }) => bytes);
const bitless = ['ieee_float', 'brain_float', 'complex'];
/** Whether elements of the dtype can be reduced by the operation; both are names. */
export const canReduce = (dtype, op) => !(op.startsWith('bit_') && bitless.includes(tables.dtypeTable[dtypes.indexOf(dtype)].kind));
/** The numbers of dtypes and operations, by their names. */
export const [f16, f32, f64, i32] = ['f16', 'f32', 'f64', 'i32'].map((name) => dtypes.indexOf(name));
export const [sum, prod, max, min] = ['sum', 'prod', 'max', 'min'].map((name) => reduceOps.indexOf(name));
