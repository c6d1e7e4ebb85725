/** What a command does when nobody reads its output any more (`agent tail 501 | head`): it ends without a word. */
export function endWhenUnread(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  });
}
