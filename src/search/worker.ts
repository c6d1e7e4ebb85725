/** A thread of a search: it searches its files, and sends a batch of results for each message. */
import { parentPort, workerData } from 'node:worker_threads';
import { LineMatcher } from './pattern.ts';
import { type Batch, BEAT, eventsOf, pack, type ThreadWork } from './search.ts';

/** A batch has at least so many bytes, unless so much time has passed. */
const BATCH_BYTES = 256 * 1024;
const BATCH_MS = 100;
/** What a line takes beside its bytes. */
const LINE_BYTES = 64;

function* batchesOf({ groups, beat, ...settings }: ThreadWork): Generator<Batch, void> {
  const matcher = new LineMatcher(settings.pattern, () => void Atomics.add(beat, BEAT.windows, 1));
  let fileNumber = 0;
  for (const group of groups) {
    let events: Batch['events'][number][] = [];
    let bytes = 0;
    let begin = performance.now();
    for (const [file, path] of group.entries()) {
      Atomics.store(beat, BEAT.file, fileNumber++);
      for (const event of eventsOf(path, matcher, settings)) {
        if (event.kind === 'lines') {
          const packed = pack(event.lines);
          events.push({ kind: 'lines', file, packed });
          bytes += packed.text.length + LINE_BYTES * packed.numbers.length;
        } else events.push({ ...event, file });
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

const work = workerData as ThreadWork;
const batches = batchesOf(work);
parentPort?.on('message', () => {
  Atomics.store(work.beat, BEAT.isBusy, 1);
  const { done, value } = batches.next();
  if (done !== true) parentPort?.postMessage(value);
  Atomics.store(work.beat, BEAT.isBusy, 0);
});
