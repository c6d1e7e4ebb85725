/** A thread of a search: it searches its files, and sends a batch of results for each message. */
import { parentPort, workerData } from 'node:worker_threads';
import { LineMatcher } from './pattern.ts';
import { eventsOf, pack, type SearchBatch, type ThreadWork } from './search.ts';

/** A batch has at least so many bytes, unless so much time has passed: it may be empty then. */
const BATCH_BYTES = 256 * 1024;
const BATCH_MS = 100;
/** What a line takes beside its bytes. */
const LINE_BYTES = 64;

function* batchesOf({ groups, ...settings }: ThreadWork): Generator<SearchBatch, void> {
  const matcher = new LineMatcher(settings.pattern);
  for (const group of groups) {
    let events: SearchBatch['events'][number][] = [];
    let bytes = 0;
    let begin = performance.now();
    for (const [file, path] of group.entries()) {
      for (const event of eventsOf(path, matcher, settings)) {
        if (event.kind === 'lines' && event.lines.length > 0) {
          const packed = pack(event.lines);
          events.push({ kind: 'lines', file, packed });
          bytes += packed.text.length + LINE_BYTES * packed.numbers.length;
        } else if (event.kind === 'end') events.push({ ...event, file });
        // Found lines do not wait for the next file: the expression may never end in it.
        const isDue = event.kind === 'end' && bytes > 0;
        if (!isDue && bytes < BATCH_BYTES && performance.now() - begin < BATCH_MS) continue;
        yield { events, isLastOfGroup: false };
        events = [];
        bytes = 0;
        begin = performance.now();
      }
    }
    yield { events, isLastOfGroup: true };
  }
}

const batches = batchesOf(workerData as ThreadWork);
parentPort?.on('message', () => parentPort?.postMessage(batches.next().value));
