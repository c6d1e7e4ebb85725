import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** A fresh directory on a disk: /tmp is in memory on many machines, and the files are large. TMPDIR overrules that. */
export function temporaryDirectory(prefix: string): string {
  const parent = process.env['TMPDIR'] || (fs.existsSync('/var/tmp') ? '/var/tmp' : os.tmpdir());
  return fs.mkdtempSync(path.join(parent, prefix));
}
