/**
 * A removed working directory ends programs and threads at their start. What runs for long leaves its own, because
 * Node.js would not notice that it was removed meanwhile.
 */
export function leaveRemovedDirectory(): void {
  try {
    process.cwd();
  } catch {
    process.chdir('/');
  }
}
