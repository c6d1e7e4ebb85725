/** Writing into a file. */

/** What is needed of an open file; a `FileHandle` is one. It may write less than it is given. */
export interface WritableFile {
  write(bytes: Buffer, offset: number, length: number, position: number | null): Written | Promise<Written>;
}

export interface Written {
  readonly bytesWritten: number;
}

/**
 * Writes all of `bytes` at `position`, or where the file stands if that is null. What a failure leaves behind is the right
 * beginning of them.
 */
export async function writeAll(file: WritableFile, bytes: Buffer, position: number | null): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const at = position === null ? null : position + written;
    written += (await file.write(bytes, written, bytes.length - written, at)).bytesWritten;
  }
}
