/** Runs the readers of responses over whole documents, for their tests. */
import { JobtailError } from '../../src/errors.ts';
import type { Operation } from '../../src/operations.ts';
import { Secrets } from '../../src/redact.ts';
import type { Lifted } from '../../src/remote/content/lifted.ts';
import type { Taken, Value } from '../../src/remote/content/values.ts';
import { JsonReader } from '../../src/remote/rest/json-reader.ts';
import { XmlReader } from '../../src/remote/soap/xml-reader.ts';
import { NAMESPACE } from './wire-envelopes.ts';

const MAX_BYTES = 10_000_000;

interface Scanned<Rest> {
  readonly rest: Rest;
  readonly items: readonly Value[];
  /** Of each item, which text is its content. */
  readonly contents: readonly (number | undefined)[];
  readonly texts: readonly Buffer[];
}

export type Cuts = readonly number[] | number;

/** What is taken: contents and items, a file, items alone, or nothing. */
export type Taking = 'parts' | 'file' | 'items' | 'nothing';

/** Collects lifted texts. */
class Collected implements Lifted {
  readonly encoding: Lifted['encoding'];
  readonly texts: Buffer[] = [];
  #pieces: Buffer[] = [];

  constructor(encoding: Lifted['encoding']) {
    this.encoding = encoding;
  }

  begin(): void {
    this.#pieces = [];
  }
  bytes(bytes: Buffer): void {
    this.#pieces.push(Buffer.from(bytes));
  }
  end(): void {
    this.texts.push(Buffer.concat(this.#pieces));
  }
  async flush(): Promise<void> {}
}

interface Reader<Rest> {
  push(chunk: Buffer): void;
  finish(): Rest;
}

function scan<Rest>(
  document: Buffer | string,
  taking: Taking,
  cuts: Cuts,
  readerOf: (taken: Taken) => Reader<Rest>,
): Scanned<Rest> {
  const bytes = Buffer.from(document);
  const places = typeof cuts === 'number' ? Array.from(bytes, (_, index) => index * cuts) : cuts;
  const lifted = new Collected(taking === 'file' ? 'base64' : 'text');
  const items: Value[] = [];
  const contents: (number | undefined)[] = [];
  const onItem = (item: Value, text: number | undefined) => {
    items.push(item);
    contents.push(text);
  };
  const reader = readerOf({
    lifted: taking === 'parts' || taking === 'file' ? lifted : undefined,
    onItem: taking === 'parts' || taking === 'items' ? onItem : undefined,
  });
  let at = 0;
  for (const cut of [...places.filter((position) => position < bytes.length).toSorted((a, b) => a - b), bytes.length]) {
    // A copy, as from the network: nobody may rely on the bytes after the chunk.
    reader.push(Buffer.from(bytes.subarray(at, cut)));
    at = cut;
  }
  return { rest: reader.finish(), items, contents, texts: lifted.texts };
}

/** The document, cut into chunks at the positions `cuts`, or after each so many bytes. */
export function scanJson(document: Buffer | string, taking: Taking, cuts: Cuts = []): Scanned<Value> {
  const { rest, ...scanned } = scan(
    document,
    taking,
    cuts,
    (taken) => new JsonReader({ ...taken, maxBytes: MAX_BYTES }),
  );
  return { rest: rest.value, ...scanned };
}

const TAKING: Partial<Record<Operation, Taking>> = {
  DownloadPartsOfJobFilesFromCluster: 'parts',
  DownloadFileFromCluster: 'file',
  ListChangedFilesForJob: 'items',
  ListJobsForCurrentUser: 'items',
};

/** The same for an envelope; of a fault, the rest is its words. */
export function scanXml(operation: Operation, document: Buffer | string, cuts: Cuts = []): Scanned<Value> {
  const secrets = new Secrets();
  const { rest, ...scanned } = scan(
    document,
    TAKING[operation] ?? 'nothing',
    cuts,
    (taken) => new XmlReader({ ...taken, operation, namespace: NAMESPACE, secrets, maxBytes: MAX_BYTES }),
  );
  return { rest: 'fault' in rest ? rest.fault : rest.value, ...scanned };
}

/** What `read` returns, or the code and the message of its error; any other error is thrown. */
export function attempted<T>(read: () => T): T | string {
  try {
    return read();
  } catch (error) {
    if (error instanceof JobtailError) return `${error.code}: ${error.message}`;
    throw error;
  }
}
