/** The thread of `MatchThread`. */
import { parentPort } from 'node:worker_threads';
import type { MatchWork } from './match-thread.ts';

const expressions = new Map<string, RegExp>();

parentPort?.on('message', ({ pattern, lines }: MatchWork) => {
  const expression = expressions.get(pattern) ?? new RegExp(pattern);
  expressions.set(pattern, expression);
  parentPort?.postMessage(lines.flatMap((line, index) => (expression.test(line) ? [index] : [])));
});
