/** A removed working directory ends programs and threads at their start. */
export function leaveRemovedDirectory(): void {
  try {
    process.cwd();
  } catch {
    process.chdir('/');
  }
}
