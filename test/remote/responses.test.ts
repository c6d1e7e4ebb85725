/** What refusals mean. The limits of calls: test/remote/printed-soap.txt and printed-rest.txt. */
import path from 'node:path';
import { expect, test } from 'vitest';
import { problemOf } from '../../src/remote/problem.ts';
import { refusalOf } from '../../src/remote/refusals.ts';
import { expectCases } from '../support/errors.ts';
import { remoteParts } from '../support/wire-remote.ts';

test('each refusal is read, and reported with a hint, as is written in refusals.txt', async () => {
  await expectCases(path.join(import.meta.dirname, 'refusals.txt'), (written) => {
    const [, status, body = ''] = /^(\d+)(?: (.*))?$/.exec(written) ?? [];
    const problem = problemOf(body.replace('%BOM', '\uFEFF').replace('%64K', ' '.repeat(65_536)));
    const refused = { status: Number(status), retryAfterMs: 7_000, problem, urlKey: 'the.url' };
    const error = refusalOf({ operation: 'ListChangedFilesForJob', ...refused }, remoteParts([]));
    expect(error.retryAfterMs).toBe(7_000);
    return [JSON.stringify(problem), `${error.code}: ${error.message}`, `(${error.hint})`];
  });
});
