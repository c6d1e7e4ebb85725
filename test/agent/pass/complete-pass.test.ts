/** When a complete pass is at its end. The interface names no state of a job, so it is the pause that tells. */
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { keyText, LIVE_FILE_NAMES, type LiveFileKey, type TaskId } from '../../../src/job.ts';
import { JOB, polledPlace, TASK } from '../../support/engine.ts';
import { expectCases } from '../../support/errors.ts';
import { lived } from '../live/story.ts';

it('each complete pass compares, waits and reports what is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'complete-pass.txt'), lived);
});

it('a pass in which nothing is new lists once, and compares live files beside each other', async () => {
  const other: LiveFileKey = { taskId: '9002' as TaskId, file: 'stdout' };
  const keys = [...LIVE_FILE_NAMES.map((file) => ({ taskId: TASK, file })), other];
  const { engine, remote, time } = polledPlace({ keys });
  for (const key of keys) remote.files.set(keyText(key), Buffer.from('.'));
  remote.files.set('9001/out', Buffer.from('a result\n'));
  const order = { tasks: [], files: [], results: true, settleAfterMs: null, source: 'command' } as const;
  engine.store.jobs.watch({ ...order, jobId: JOB }, time.now);
  await engine.pass();
  const calls: string[] = [];
  let begun = 0;
  for (const call of ['readParts', 'listChangedFiles', 'downloadFile'] as const) {
    const made = remote[call].bind(remote) as (...of: unknown[]) => Promise<unknown>;
    const counted = async (...of: unknown[]) => {
      calls.push(call);
      begun += Number(call === 'downloadFile');
      // Answers come in any order on a busy machine.
      if (call === 'downloadFile') await vi.waitUntil(() => begun >= 4);
      return await made(...of).finally(() => calls.push('answer'));
    };
    Object.assign(remote, { [call]: counted });
  }
  const onCompared = () => void calls.push('compared');
  const expected = { verified: 5, openEnds: [], results: { listed: 6, failed: 0 } };
  expect(await engine.pass(undefined, false, { onCompared })).toMatchObject(expected);
  const [download, answer] = ['downloadFile', 'answer'];
  expect(calls).toEqual([
    ...['readParts', answer, 'listChangedFiles', answer],
    ...Array(4).fill(download),
    ...Array(4).fill(answer),
    ...[download, answer],
    ...['compared', download, answer],
  ]);
});
