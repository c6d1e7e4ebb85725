// Runs the sources with a planted mistake: `node --import ./test/virtual/planting.mjs FILE`, with JOBTAIL_MUTANT the file
// and its text. The product has no hook for it.
import { register } from 'node:module';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';
import { load as loadTypeScript } from '../../scripts/typescript.mjs';

// The hooks run in a thread of their own, which loads this file once more.
if (isMainThread) register(import.meta.url);

const planted = JSON.parse(process.env['JOBTAIL_MUTANT'] ?? '{}');

export async function load(url, context, next) {
  const isPlanted = url.startsWith('file:') && fileURLToPath(url) === planted.file;
  return loadTypeScript(url, context, next, isPlanted ? planted.text : undefined);
}
