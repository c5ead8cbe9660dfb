// node size_test.mjs LIMIT FILE... checks that the files together have less than LIMIT bytes when gzip has compressed them.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { gzipSync } from 'node:zlib';

const [limit, ...files] = process.argv.slice(2);
const sizes = files.map((file) => gzipSync(readFileSync(file), { level: 9 }).length);
const total = sizes.reduce((sum, size) => sum + size, 0);
console.log(`${files.map((file, i) => `${basename(file)} ${sizes[i]}`).join(', ')}: ${total} bytes compressed, of at most ${limit}`);
process.exit(total > Number(limit) ? 1 : 0);
