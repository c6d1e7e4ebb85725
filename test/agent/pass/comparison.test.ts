import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { proveFile } from '../../../src/agent/pass/comparison.ts';
import type { Remote } from '../../../src/agent/ports/server.ts';
import { JobtailError, type NoFile } from '../../../src/errors.ts';
import type { JobId } from '../../../src/job.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

it.each([
  ['a link', (file: string) => fs.symlinkSync('/etc/passwd', file)],
  ['a pipe', (file: string) => void execFileSync('mkfifo', [file])],
  ['a directory', (file: string) => fs.mkdirSync(file)],
])('%s in the place of a mirror proves nothing, and is not waited for', async (_, put) => {
  const file = path.join(temporaryDirectory(), 'stdout.log');
  put(file);
  const options = { remote: new ModelRemote(), jobId: '501' as JobId, signal: new AbortController().signal };
  expect(await proveFile(file, 'stdout.txt', options)).toEqual({
    ...{ outcome: 'unproven', bytes: 0 },
    reason: `${file} is not a regular file: it is not read`,
  });
});

it.each([
  [undefined, 4, 'equal'],
  ['unreadable', 4, 'equal'],
  ['unreadable', 0, 'unproven'],
  ['nothing', 4, 'unproven'],
] as const)(
  'a file that the service refuses (%s) is compared by the other way if it may be there, and that brings %i bytes: %s',
  async (inPlace, bytes, outcome) => {
    const file = path.join(temporaryDirectory(), 'stdout.log');
    fs.writeFileSync(file, 'text');
    const remote = new ModelRemote();
    const refusal: { inPlace?: NoFile } = inPlace === undefined ? {} : { inPlace };
    remote.downloadFile = () => Promise.reject(new JobtailError('fault', 'refused', refusal));
    const downloadFile: Remote['downloadFile'] = async (_job, _name, sink) => {
      if (bytes === 0) throw new JobtailError('unreachable', 'away');
      await sink(Buffer.from('text'));
      return 4;
    };
    const direct = { isOpen: () => true, downloadFile };
    const options = { remote, direct, jobId: '501' as JobId, signal: new AbortController().signal };
    expect(await proveFile(file, 'stdout.txt', options)).toMatchObject({
      ...{ outcome, bytes: 4 },
      ...(outcome === 'unproven' && { reason: 'refused' }),
    });
  },
);
