/** A complete verification: what the cluster lists beside what the service lists. */
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { isHere, type Verified, verifyJob } from '../../../src/agent/pass/verification.ts';
import type { ClusterList } from '../../../src/agent/ports/transfer.ts';
import { asJobtailError } from '../../../src/errors.ts';
import { expectCases } from '../../support/errors.ts';
import { openFilesIn } from '../../support/temp-directory.ts';
import { JOB, type ResultsPlace, ResultsStory } from '../results/place.ts';

/** `clusterFiles`: what the cluster lists; without them, it is not asked. */
async function verified(place: ResultsPlace, clusterFiles?: ClusterList['files']): Promise<Verified[]> {
  const { mirror: mirrorDirectory, store, remote, results } = place;
  const { signal } = new AbortController();
  const list = vi.spyOn(results, 'listCluster').mockResolvedValue({ files: clusterFiles ?? [], links: 3 });
  const options = { mirrorDirectory, store, remote, results, isComplete: clusterFiles !== undefined, signal };
  const reported: Verified[] = [];
  const hide = (name: string) => `hidden ${name}`;
  const verifying = verifyJob(JOB, { ...options, hide, onVerified: (one) => reported.push(one) });
  const found = await verifying.finally(() => {
    expect(list.mock.calls).toEqual(clusterFiles ? [[JOB, remote, signal]] : []);
    list.mockRestore();
  });
  expect(found).toEqual({ files: reported, cluster: clusterFiles ? { files: clusterFiles.length, links: 3 } : null });
  expect(openFilesIn(mirrorDirectory)).toBe(0);
  return reported.map(({ name, proof }) => ({ name: /^hidden (.*)/.exec(name)?.[1] ?? 'not hidden', proof }));
}

/** What is not equal, whether nothing of it needs to be here, and the downloads. */
async function linesOf(place: ResultsPlace, step: string): Promise<string[]> {
  const sizes = step === 'verify alone' ? undefined : step.split(' ').slice(1);
  const files = sizes?.map((each) => ({ name: each.replace(/=.*/, ''), bytes: Number(each.replace(/.*=/, '')) }));
  place.remote.downloads.length = 0;
  const found = await verified(place, files).catch((thrown: unknown) => asJobtailError(thrown).code);
  if (typeof found === 'string') return [`${step}: thrown ${found}`];
  const shown = found.filter(({ name }) => name !== 'live files');
  const hasLiveFiles = place.store.liveFiles.ofJob(JOB).length > 0;
  expect(found.length - shown.length, 'lines of missing live files').toBe(hasLiveFiles ? 0 : 1);
  const lines = shown.map((one) => {
    const { outcome, ...proof } = one.proof;
    return `  ${one.name}: ${outcome} ${JSON.stringify(proof)}${isHere(one) ? ', is as it is to be' : ''}`;
  });
  const all = [`${step}: downloads [${place.remote.downloads.join(', ')}]`, ...lines];
  return all.map((line) => line.replaceAll(place.mirror, 'MIRROR'));
}

it('each verification compares, downloads and reports what is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'verification.txt'), async (written) => {
    const story = new ResultsStory();
    const result: string[] = [];
    for (const step of written.split('; '))
      if (step.startsWith('verify')) result.push(...(await linesOf(story.place, step)));
      else await story.do(step);
    return result;
  });
});
