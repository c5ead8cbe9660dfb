// Runs the tests of one folder below tests/ with Node's own runner: node scripts/test.mjs unit [--filter PATTERN]. PATTERN selects by the
// tests' names.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const [folder = 'unit', flag, word = ''] = process.argv.slice(2);
if (flag !== undefined && flag !== '--filter') {
  console.error(`test: '${flag}' is not an option; usage: node scripts/test.mjs FOLDER [--filter WORD]`);
  process.exit(2);
}
const sources = readdirSync(join(root, 'tests', folder))
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => join(root, 'tests', folder, name));
// The bundles are put below node_modules, so that they find the packages that are not part of them.
const output = join(root, 'node_modules', '.tests', folder);
await build({
  entryPoints: sources,
  outdir: output,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  platform: 'node',
  format: 'esm',
  packages: 'external',
  sourcemap: 'inline',
  logLevel: 'warning',
});
const files = sources.map((source) => join(output, source.split('/').pop().replace(/\.ts$/, '.mjs')));
// A test that is asked to take longer needs as much more.
const timeout = 400_000 + Number(process.env['RINGLET_SOAK_MINUTES'] ?? 0) * 60_000;
const run = spawnSync(
  process.execPath,
  [
    '--enable-source-maps',
    ...(word === '' ? [] : ['--test-name-pattern', word]),
    '--test',
    '--test-concurrency=1',
    `--test-timeout=${timeout}`,
    ...files,
  ],
  {
    stdio: 'inherit',
  },
);
process.exit(run.status ?? 1);
