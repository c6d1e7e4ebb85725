/** The standard output of rsync: progress in lines that end in a carriage return, files that came, files left out. */
import { JobtailError } from '../errors.ts';

/** The format of the line that rsync prints for each file; the number in it makes rsync print it after the bytes. */
export const OUT_FORMAT = '+%b %n';

const MOST_LINE = 65_536;

export interface RsyncNews {
  onBytes(bytes: number): void;
  /** By its path. It may have come damaged, and will then be sent again. */
  onFile(name: string): void;
  onTooLarge(name: string): void;
}

/** Reads all of it. It is ASCII: what is beyond is escaped. */
export async function readRsyncOutput(output: AsyncIterable<Buffer>, news: RsyncNews): Promise<void> {
  let rest = '';
  for await (const piece of output) {
    const lines = (rest + piece.toString('latin1')).split(/[\r\n]/);
    rest = lines.pop() ?? '';
    // No name is as long; the other side can have it print what it likes.
    if (rest.length > MOST_LINE) throw new JobtailError('unexpected-answer', 'a line of rsync has no end');
    for (const line of lines) {
      const bytes = /^ *([0-9]+) +[0-9]+%/.exec(line)?.[1];
      const large = /^(.*) is over max-size$/.exec(line)?.[1];
      const came = /^\+[0-9]+ (.*)$/.exec(line)?.[1];
      if (bytes !== undefined) news.onBytes(Number(bytes));
      if (large !== undefined) news.onTooLarge(unescaped(large));
      if (came !== undefined) news.onFile(unescaped(came));
    }
  }
}

/** rsync writes what is not printable as `\#` and three octal digits, byte by byte. */
function unescaped(name: string): string {
  if (!name.includes('\\#')) return name;
  const bytes = Buffer.from(name, 'utf8').toString('latin1');
  const plain = bytes.replaceAll(/\\#([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
  return Buffer.from(plain, 'latin1').toString('utf8');
}
