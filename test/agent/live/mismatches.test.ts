/** A mismatch is reported once, with its kind, offset and generation, and kept with its reason. */
import path from 'node:path';
import { test } from 'vitest';
import { expectCases } from '../../support/errors.ts';
import { lived } from './story.ts';

test('each mismatch is reported once, with its reason, as is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'mismatches.txt'), lived);
});
