/** Jobs that are watched and quiet: what a poll costs, against a shell loop of curl. */
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Figures, Measurement, Place, Prepared } from './measurement.ts';
import { ACTION, FILE_TYPES, SESSION } from './middleware.ts';
import { runProcess, type Started, usageOf } from './processes.ts';
import { NAMESPACE } from './service/job.ts';
import { AgentPlace, ALL_FILES, type RunningMiddleware, startMiddleware, untilAsked } from './watching.ts';

const FILE_BYTES = 3_000;
const OVERLAP_BYTES = 256;
/** Polls of each job until its files are known to be quiet. */
const WARM_POLLS = 4;

interface Following {
  readonly middleware: RunningMiddleware;
  readonly agent: Started;
  readonly stop: () => Promise<void>;
}

async function follow(directory: string, jobs: number, intervalSeconds: number): Promise<Following> {
  const middleware = await startMiddleware({ fileBytes: FILE_BYTES, growingBytesPerSecond: 0 });
  const place = new AgentPlace(directory);
  place.prepare(middleware, { jobs, files: ALL_FILES, intervalSeconds, requestsPerMinute: 1_000_000 });
  const agent = place.start();
  await untilAsked(agent, middleware, jobs * WARM_POLLS);
  const stop = async () => {
    await agent.stop();
    await middleware.stop();
  };
  return { middleware, agent, stop };
}

/** What the agent uses within some seconds. */
async function usedWithin(seconds: number, { middleware, agent }: Following): Promise<Figures> {
  await middleware.reset();
  const before = usageOf(agent.pid);
  await sleep(seconds * 1000);
  const after = usageOf(agent.pid);
  const { calls, longestGapMs } = await middleware.figures();
  const cpuSeconds = after.cpuSeconds - before.cpuSeconds;
  return {
    calls,
    pollMs: (cpuSeconds * 1000) / calls,
    coreShare: cpuSeconds / seconds,
    residentBytes: after.residentBytes,
    longestGapMs,
  };
}

/** One call a job, with the requests written beforehand. */
function curlLoop({ directory }: Place, url: string, jobs: number): () => Promise<Figures> {
  const requests = path.join(directory, 'requests');
  fs.mkdirSync(requests);
  for (let job = 1; job <= jobs; job += 1) fs.writeFileSync(path.join(requests, String(job)), requestOf(job));
  const header = `content-type: application/soap+xml; charset=utf-8; action="${ACTION}"`;
  const loop = `for job in requests/*; do curl -s -o "answer-\${job#requests/}" -H '${header}' --data-binary "@$job" ${url}/FileTransferWs || exit 1; done`;
  return async () => {
    const { cpuSeconds, seconds } = await runProcess('sh', ['-c', loop], { cwd: directory });
    return { pollMs: (cpuSeconds * 1000) / jobs, seconds };
  };
}

function requestOf(job: number): string {
  const entries = FILE_TYPES.map(
    (type) =>
      `<t:TaskFileOffsetExt><t:submittedTaskInfoId>${job}</t:submittedTaskInfoId><t:fileType>${type}</t:fileType>` +
      `<t:offset>${FILE_BYTES - OVERLAP_BYTES}</t:offset></t:TaskFileOffsetExt>`,
  );
  return (
    '<?xml version="1.0" encoding="utf-8"?><s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" ' +
    `xmlns:t="${NAMESPACE}"><s:Body><t:DownloadPartsOfJobFilesFromCluster><t:submittedJobInfoId>${job}` +
    `</t:submittedJobInfoId><t:taskFileOffsets>${entries.join('')}</t:taskFileOffsets>` +
    `<t:sessionCode>${SESSION}</t:sessionCode></t:DownloadPartsOfJobFilesFromCluster></s:Body></s:Envelope>`
  );
}

export const quietJobs: Measurement = {
  name: 'quiet-jobs',
  needs: ['curl'],
  goals: [
    {
      what: 'a poll of a quiet job with 4 files, against a shell loop of curl: processor time',
      ...{ kind: 'ratio', figure: 'pollMs', ours: 'agent', peer: 'curl', atMost: 0.15 },
    },
    {
      what: '1,000 such jobs, all polled within 10 s',
      kind: 'limit',
      figure: 'coreShare',
      ours: 'agent',
      atMost: 0.25,
    },
    { what: 'the same: memory', kind: 'limit', figure: 'residentBytes', ours: 'agent', atMost: 200e6 },
    {
      what: 'the same: longest time between two polls',
      kind: 'limit',
      figure: 'longestGapMs',
      ours: 'agent',
      atMost: 10_000,
    },
  ],
  prepare: async (place): Promise<Prepared> => {
    const [jobs, interval] = place.quick ? [100, 2] : [1_000, 10];
    const following = await follow(path.join(place.directory, 'agent'), jobs, interval);
    return {
      sides: {
        agent: () => usedWithin(interval * 1.5, following),
        curl: curlLoop(place, following.middleware.url, jobs),
      },
      close: following.stop,
    };
  },
};
