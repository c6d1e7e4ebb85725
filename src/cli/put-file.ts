/** Files that a command writes for a person. */
import fs from 'node:fs';
import { asJobtailError, JobtailError } from '../errors.ts';

/** Whole, or as it was before. @throws JobtailError, which names the file */
export function putFile(file: string, text: string, mode = 0o600): void {
  const partial = `${file}.${process.pid}.new`;
  try {
    fs.writeFileSync(partial, text, { mode, flag: 'wx' });
    fs.renameSync(partial, file);
  } catch (thrown) {
    fs.rmSync(partial, { force: true });
    throw notWritten(file, thrown);
  }
}

/** Nothing goes on by itself, unlike in the agent. */
export function notWritten(file: string, thrown: unknown, more = ''): JobtailError {
  const { code, message, hint: usual } = asJobtailError(thrown);
  const hint = code === 'disk-full' ? 'free some space' : usual;
  return new JobtailError(code, `cannot write ${file}: ${message}`, {
    hint: `${hint}${more}, and run the command again`,
  });
}
