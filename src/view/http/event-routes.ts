/** The streams of events: what a page looks at, as it changes. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Listener } from '../events/changes.ts';
import {
  agentTopic,
  figuresTopic,
  jobsTopic,
  jobTopic,
  lengthTopic,
  type Message,
  serviceTopic,
  type Topic,
  troubleTopic,
} from '../events/topics.ts';
import { STATE, type ViewParts } from '../parts.ts';
import { streamed, type ViewApp } from './answers.ts';
import { Query } from './query.ts';

const MOST_JOBS = 8;
const MOST_FILES = 32;
/** Of many changes, one message. */
const GATHER_MS = 40;
/** A stream of which nothing comes is kept open by that, and one that nobody reads any more is noticed. */
export const HEARTBEAT_MS = 15_000;

export function addEvents(app: ViewApp, parts: ViewParts): void {
  app.get('/api/events', (context) => {
    const query = new Query(context.req.url);
    const files = query.liveFiles(MOST_FILES);
    const jobs = query.jobs(MOST_JOBS);
    const { snapshots, recorder, lengths, limits } = parts;
    const release = limits.take('streams');
    const watched = files.map(({ jobId, live }) => lengths.look(jobId, live));
    snapshots.look();
    const topics: Topic[] = [
      troubleTopic(snapshots),
      agentTopic(snapshots),
      ...(query.flag('jobs') ? [jobsTopic(snapshots)] : []),
      ...jobs.map((jobId) => jobTopic(snapshots, jobId)),
      ...watched.map(lengthTopic),
      ...(query.flag('service') ? [serviceTopic(snapshots), figuresTopic(recorder)] : []),
    ];
    const listener = parts.changes.listen([STATE, ...watched.map(({ name }) => name)]);
    const end = () => {
      listener.close();
      for (const each of watched) lengths.leave(each);
      snapshots.leave();
      release();
    };
    const headers = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' };
    return streamed(parts, context, told(parts, topics, listener), { headers, end });
  });
}

/** A slow reader gets fewer messages, not later ones: what is new is asked for when the last ones were taken. */
async function* told({ settings }: ViewParts, topics: readonly Topic[], listener: Listener) {
  yield textOf([['hello', { program: settings.program, now: Date.now() }]]);
  while (!listener.isClosed) {
    const news = topics.flatMap((topic) => topic());
    if (news.length > 0) yield textOf(news);
    if (await listener.heard(HEARTBEAT_MS)) await sleep(GATHER_MS);
    else yield Buffer.from(':\n\n');
  }
}

const textOf = (messages: readonly Message[]) =>
  Buffer.from(messages.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join(''));
