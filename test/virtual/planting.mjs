// Runs the sources with a planted mistake: `node --import ./test/virtual/planting.mjs FILE`, with JOBTAIL_PLANTED the file
// and the text to replace. The product has no hook for it.
import { readFileSync } from 'node:fs';
import { register } from 'node:module';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';
import { load as loadTypeScript } from '../../scripts/typescript.mjs';

// The hooks run in a thread of their own, which loads this file once more.
if (isMainThread) register(import.meta.url);

const planted = JSON.parse(process.env['JOBTAIL_PLANTED'] ?? 'null');

export async function load(url, context, next) {
  const loaded = (file) => loadTypeScript(url, context, next, file);
  if (planted === null || !url.endsWith(`/src/${planted.file}`)) return loaded();
  const text = readFileSync(fileURLToPath(url), 'utf8');
  const parts = text.split(planted.text);
  if (parts.length !== 2) throw new Error(`${planted.file} has "${planted.text}" ${parts.length - 1} times, not once`);
  return loaded(parts.join(planted.instead));
}
