import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { compareFile, proveFile } from '../../../src/agent/pass/comparison.ts';
import type { Remote, Sink } from '../../../src/agent/ports/server.ts';
import { asJobtailError, JobtailError, type NoFile } from '../../../src/errors.ts';
import type { JobId } from '../../../src/job.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

it('a pipe in the place of a mirror proves nothing, and is not waited for', async () => {
  const file = path.join(temporaryDirectory(), 'stdout.log');
  execFileSync('mkfifo', [file]);
  const options = { remote: new ModelRemote(), jobId: '501' as JobId, signal: new AbortController().signal };
  expect(await proveFile(file, 'stdout.txt', options)).toEqual({
    ...{ outcome: 'unproven', bytes: 0 },
    reason: `${file} is not a regular file: it is not read`,
  });
});

/** What the remote file has arrives in two pieces. */
it.each([
  ['text', ['tExt', 'more'], false, { outcome: 'different', at: 1, remoteBytes: 8 }],
  ['text', ['tExt', 'more'], undefined, { outcome: 'different', at: 1, remoteBytes: 8 }],
  ['text', ['tExt', 'more'], true, { outcome: 'different', at: 1, remoteBytes: 4 }],
  ['texts', ['te', 'xt'], true, { outcome: 'different', at: 4, remoteBytes: 4 }],
  ['text', ['text', 'more'], true, { outcome: 'equal', remoteBytes: 8 }],
  ['', ['x', 'y'], true, { outcome: 'equal', remoteBytes: 1 }],
  ['', ['x', 'y'], false, { outcome: 'equal', remoteBytes: 2 }],
] as const)('%j is compared with %j, until it differs: %s', async (text, pieces, untilDifferent, proof) => {
  const file = path.join(temporaryDirectory(), 'stdout.log');
  fs.writeFileSync(file, text);
  const bring = async (sink: Sink) => {
    try {
      for (const piece of pieces) await sink(Buffer.from(piece));
    } catch (thrown) {
      throw asJobtailError(thrown);
    }
    return 0;
  };
  const expected = { ...proof, bytes: text.length };
  expect(await compareFile(file, bring, untilDifferent)).toEqual(expected);
  const remote = Object.assign(new ModelRemote(), {
    downloadFile: (_: JobId, _name: string, sink: Sink) => bring(sink),
  });
  const options = { remote, jobId: '501' as JobId, signal: new AbortController().signal };
  expect(await proveFile(file, 'stdout.txt', options, untilDifferent)).toEqual(expected);
});

/** Proves a file that the service fails to send; `send` is the other way. */
function proving(error: JobtailError, isOpen: boolean, send: (stop: AbortController) => void = () => {}) {
  const file = path.join(temporaryDirectory(), 'stdout.log');
  fs.writeFileSync(file, 'text');
  const stop = new AbortController();
  const downloadFile: Remote['downloadFile'] = async (_job, _name, sink) => {
    send(stop);
    await sink(Buffer.from('text'));
    return 4;
  };
  const remote = Object.assign(new ModelRemote(), { downloadFile: () => Promise.reject(error) });
  const direct = { isOpen: () => isOpen, downloadFile };
  return proveFile(file, 'stdout.txt', { remote, direct, jobId: '501' as JobId, signal: stop.signal });
}

it.each([
  ['unreachable', true, 'unreachable'],
  ['http-status', false, 'http-status'],
  ['http-status', true, undefined],
  ['timeout', true, undefined],
] as const)(
  'a file that the service fails to send (%s) comes the other way, if that is open: %s',
  async (code, isOpen, thrown) => {
    const error = new JobtailError(code, 'it fails');
    if (thrown === undefined) expect(await proving(error, isOpen)).toMatchObject({ outcome: 'equal', bytes: 4 });
    else await expect(proving(error, isOpen)).rejects.toMatchObject({ code: thrown });
    // A stop is no reason to report the failure of the service.
    const stopped = proving(error, isOpen, (stop) => {
      stop.abort();
      throw new JobtailError('aborted', 'it was stopped');
    });
    await expect(stopped).rejects.toMatchObject({ code: thrown ?? 'aborted' });
  },
);

it.each([
  [undefined, true, 'equal'],
  ['unreadable', true, 'equal'],
  ['unclear', true, 'equal'],
  ['unreadable', false, 'unproven'],
  ['nothing', true, 'unproven'],
] as const)(
  'a refused file (%s) is compared by the other way if it may be there, and if that brings it: %s',
  async (inPlace, isBrought, outcome) => {
    const refusal: { inPlace?: NoFile } = inPlace === undefined ? {} : { inPlace };
    const proof = proving(new JobtailError('fault', 'refused', refusal), true, () => {
      if (!isBrought) throw new JobtailError('unreachable', 'away');
    });
    const reason = outcome === 'unproven' ? { reason: 'refused' } : {};
    expect(await proof).toMatchObject({ outcome, bytes: 4, ...reason });
  },
);
