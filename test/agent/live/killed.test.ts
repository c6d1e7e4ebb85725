/** What a kill leaves after the committed offset is compared, and cut if it differs. It starts no generation. */
import path from 'node:path';
import { test } from 'vitest';
import { expectCases } from '../../support/errors.ts';
import { lived } from './story.ts';

test('after each kill, the polls of the next start request and cut what is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'killed.txt'), lived);
});
