/** A search in threads is ended by its signal, also within an expression that never ends. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { search } from '../../src/search/search.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

it('a search that is stopped ends, whatever its expression does', async () => {
  const file = path.join(temporaryDirectory(), 'endless');
  fs.writeFileSync(file, `${'a'.repeat(5_000)}!\n`);
  const stop = new AbortController();
  const files = [{ path: file, size: fs.statSync(file).size }];
  const wanted = { what: 'count' } as const;
  const found = search({ files, pattern: { source: '(a+)+$' }, wanted, threads: 1, signal: stop.signal });
  const first = found.next();
  stop.abort(new Error('the page has left'));
  await expect(first).rejects.toMatchObject({ name: 'AbortError' });
});
