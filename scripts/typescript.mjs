// Lets Node.js 20 run the sources as they are: `node --import ./scripts/typescript.mjs FILE`. For scripts and tests that
// need one module in a process of its own, where dist/ has the program as a whole.
import { readFile } from 'node:fs/promises';
import { register } from 'node:module';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';

// The hooks run in a thread of their own, which loads this file once more.
if (isMainThread) register(import.meta.url);

export async function load(url, context, next) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return next(url, context);
  const { transform } = await import('rolldown/utils');
  const file = fileURLToPath(url);
  const { code, errors } = await transform(file, await readFile(file, 'utf8'));
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  return { format: 'module', shortCircuit: true, source: code };
}
