// Runs the tests of one folder below tests/, or of one file in it, with Node's own runner.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';

const usage = `Usage: node scripts/test.mjs [FOLDER [FILE]] [--filter PATTERN]

Runs the tests in tests/FOLDER (unit unless given), or those in tests/FOLDER/FILE.test.ts; with --filter those whose names match PATTERN, a
regular expression.`;

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const { folder, sources, filter } = readArguments();
// The bundles are put below node_modules, so that they find the packages that are not part of them.
const output = join(root, 'node_modules', '.tests', folder);
await build({
  entryPoints: sources.map((name) => join(root, 'tests', folder, `${name}.test.ts`)),
  outdir: output,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  platform: 'node',
  format: 'esm',
  packages: 'external',
  sourcemap: 'inline',
  logLevel: 'warning',
});
// A test that is asked to take longer needs as much more.
const timeout = 400_000 + Number(process.env['RINGLET_SOAK_MINUTES'] ?? 0) * 60_000;
const results = join(output, 'results.tap');
const run = spawnSync(
  process.execPath,
  [
    '--enable-source-maps',
    ...(filter === undefined ? [] : ['--test-name-pattern', filter]),
    ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
    ...['--test-reporter=tap', `--test-reporter-destination=${results}`],
    '--test',
    '--test-concurrency=1',
    `--test-timeout=${timeout}`,
    ...sources.map((name) => join(output, `${name}.test.mjs`)),
  ],
  // What they test is found from the repository's folder, unless variables name it.
  { stdio: 'inherit', cwd: resolve(root, '..') },
);
if (run.status === 0 && /^# pass 0$/m.test(readFileSync(results, 'utf8'))) {
  // Node counts those that a filter leaves out as skipped, which are no failures.
  console.error(`test: no test ran: ${filter === undefined ? 'there is none' : `none has a name that matches '${filter}'`}`);
  process.exit(2);
}
process.exit(run.status ?? 1);

function readArguments() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { filter: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
    });
    if (values.help) {
      console.log(usage);
      process.exit(0);
    }
    const [folder = 'unit', file, ...more] = positionals;
    if (more.length > 0) throw new Error(`'${more[0]}' is one argument too many`);
    const folders = readdirSync(join(root, 'tests'));
    if (!folders.includes(folder)) throw new Error(`tests has no folder '${folder}'; it has ${folders.join(', ')}`);
    const all = readdirSync(join(root, 'tests', folder))
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => name.slice(0, -'.test.ts'.length));
    if (file !== undefined && !all.includes(file)) throw new Error(`tests/${folder} has no '${file}'; it has ${all.join(', ')}`);
    new RegExp(values.filter ?? ''); // throws where it is none
    return { folder, sources: file === undefined ? all : [file], filter: values.filter };
  } catch (error) {
    console.error(`test: ${error.message}\n${usage}`);
    process.exit(2);
  }
}
