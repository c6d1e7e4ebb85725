/**
 * What each poll of a live file requests and appends; what it does of a long backlog, and of bytes that no text shows; what
 * it requests and cuts after a kill; and that each mismatch is reported once: as is written in the files of cases.
 */
import path from 'node:path';
import { test } from 'vitest';
import { expectCases } from '../../support/errors.ts';
import { lived } from './story.ts';

test.each(['catch-up', 'killed', 'mismatches', 'append/backlog', 'append/raw-bytes'])(
  'each poll requests, appends, cuts and reports what is written: %s',
  async (file) => {
    await expectCases(path.join(import.meta.dirname, `${file}.txt`), lived);
  },
);
