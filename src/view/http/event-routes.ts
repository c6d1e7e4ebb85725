/** The streams of events: what a page looks at, as it changes. */
import { setTimeout as sleep } from 'node:timers/promises';
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
import type { ViewParts } from '../parts.ts';
import { streamed, type ViewApp } from './answers.ts';
import { Query } from './query.ts';

const MOST_JOBS = 8;
const MOST_FILES = 32;
/** Of many changes, one message. */
const GATHER_MS = 40;
/** A stream of which nothing comes is kept open by that, and one that nobody reads any more is noticed. */
const HEARTBEAT_MS = 15_000;

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
    const stream = { isOver: false };
    const end = () => {
      stream.isOver = true;
      parts.changes.tell();
      for (const each of watched) lengths.leave(each);
      snapshots.leave();
      release();
    };
    const headers = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' };
    return streamed(parts, context, told(parts, topics, stream), { headers, end });
  });
}

/** A slow reader gets fewer messages, not later ones: what is new is asked for when the last ones were taken. */
async function* told({ changes, settings }: ViewParts, topics: readonly Topic[], stream: { readonly isOver: boolean }) {
  yield textOf([['hello', { program: settings.program, now: Date.now() }]]);
  while (!stream.isOver) {
    const { count } = changes;
    const news = topics.flatMap((topic) => topic());
    if (news.length > 0) yield textOf(news);
    await changes.since(count, HEARTBEAT_MS);
    if (changes.count === count) yield Buffer.from(':\n\n');
    else await sleep(GATHER_MS);
  }
}

const textOf = (messages: readonly Message[]) =>
  Buffer.from(messages.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join(''));
