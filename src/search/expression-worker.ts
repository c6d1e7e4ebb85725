/** The thread of `expressionThread`. */
import { parentPort } from 'node:worker_threads';
import type { ExpressionWork, FoundInTexts } from './guarded-thread.ts';

function foundIn({ source, flags, texts, from }: ExpressionWork): FoundInTexts {
  const expression = new RegExp(source, flags);
  if (from === undefined) return texts.map((text) => (expression.test(text) ? [0, 0] : []));
  return texts.map((text, index) => {
    expression.lastIndex = from[index] ?? 0;
    return [...text.matchAll(expression)].flatMap((match) => [match.index, match[0].length]);
  });
}

parentPort?.on('message', (work: ExpressionWork) => parentPort?.postMessage(foundIn(work)));
