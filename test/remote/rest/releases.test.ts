/** The table of releases: what the agent concludes from it. What the simulated cluster makes of it: test/contract. */
import { readFileSync } from 'node:fs';
import * as v from 'valibot';
import { describe, expect, it, test } from 'vitest';
import { problemOf as answerTo, RestFailure } from '../../../simulator/rest/problems.ts';
import { releaseOf } from '../../../simulator/rest/releases.ts';
import { serviceSection } from '../../../src/config/service-schema.ts';
import { problemOf } from '../../../src/remote/problem.ts';
import { refusalOf } from '../../../src/remote/refusals.ts';
import {
  ADDRESSES,
  FAILURES,
  type FailureKind,
  RELEASE_NAMES,
  type ReleaseName,
  ROWS,
  valuesOf,
} from '../../../src/remote/rest/releases.ts';
import { signInRefusal } from '../../../src/remote/signin/refusal.ts';
import { remoteParts } from '../../support/wire-remote.ts';

test('the least of calls at a time is the default of the configuration', () => {
  const { concurrency } = v.parse(serviceSection('/'), { protocol: 'rest', baseUrl: 'http://127.0.0.1:1' });
  expect(concurrency).toBe(Math.min(...valuesOf(ROWS.callsAtATime)));
});

describe('the agent recognizes, in the words of each release,', () => {
  /** With what the words name, and the code that the error has. Of a sign-in: the code of that. */
  const CONCLUDED: Readonly<Record<FailureKind, readonly [code: string, ...subjects: string[]]>> = {
    sessionUnknown: ['session-lost', '11111111'],
    sessionExpired: ['session-lost', '11111111', '2026-11-28'],
    wrongSecret: ['sign-in-refused', 'alice'],
    unknownUser: ['sign-in-refused|http-status', 'alice'],
    wrongKey: ['sign-in-refused', 'alice'],
    invalid: ['fault', 'Path contains some illegal characters\n'],
    tooLongName: ['fault', '50'],
    nullList: ['fault'],
    noSuchJob: ['fault', '7'],
    noSuchJobInfo: ['fault', '7'],
    foreignJob: ['fault', 'alice', '7'],
    noSuchFile: ['fault', '5/5/x', "No such file. Path: '/home/u/5/5/x'."],
    unreadableFile: ['fault', '5/5/x', 'Permission denied'],
    directory: ['fault', '5/5/x', 'Failure'],
    emptyPath: ['fault|unavailable'],
    unexpected: ['fault'],
    external: ['fault', 'The limit was reached.'],
  };
  /** What is in the place of the file, from the release on that reports it. */
  const IN_PLACE: Partial<Record<FailureKind, readonly [what: string, from: ReleaseName]>> = {
    noSuchFile: ['nothing', '3.1'],
    unreadableFile: ['unreadable', '5.0'],
    directory: ['unclear', '5.0'],
  };
  const { secrets } = remoteParts([]);

  it.each(Object.keys(FAILURES) as FailureKind[])('%s', (kind) => {
    const [code, ...subjects] = CONCLUDED[kind];
    for (const name of RELEASE_NAMES) {
      const { status, body } = answerTo(new RestFailure(kind, ...subjects), releaseOf(name));
      const text = JSON.stringify(body);
      const answer = { status, retryAfterMs: undefined };
      const isSignIn = kind === 'wrongSecret' || kind === 'unknownUser';
      const refused = {
        ...answer,
        operation: 'DownloadFileFromCluster',
        problem: problemOf(text),
        urlKey: '',
        hasKey: kind === 'wrongKey',
      } as const;
      const error = isSignIn
        ? signInRefusal(answer, text, { url: '', secrets, secretPlace: '' })
        : refusalOf(refused, { secrets, isSessionFault: () => false });
      expect(code.split('|'), `${name}: ${error.message}`).toContain(error.code);
      const [what, from] = IN_PLACE[kind] ?? [];
      const isReported = from !== undefined && RELEASE_NAMES.indexOf(name) >= RELEASE_NAMES.indexOf(from);
      expect(error.inPlace, name).toBe(isReported ? what : undefined);
    }
  });
});

test('each row names a section of the document', () => {
  const sections = readFileSync(new URL('../../../docs/dev/rest.md', import.meta.url), 'utf8');
  const rows = [...Object.values(ROWS), ...Object.values(ADDRESSES), ...Object.values(FAILURES)];
  for (const { section } of rows) expect(sections).toContain(`\n### ${section} `);
});
