/** Owns the keyboard of a grid: one cell in the order of the keyboard, arrows between cells, and telling which one is meant. */

/** Makes cells reachable by arrows; `onMeant` hears of the cell under the pointer or the focus, null when there is none. */
export function rove(
  cells: readonly (readonly HTMLElement[])[],
  onMeant: (cell: { readonly row: number; readonly column: number }) => void,
): void {
  let current = cells[0]?.[0];
  for (const [row, list] of cells.entries()) {
    for (const [column, cell] of list.entries()) {
      cell.tabIndex = cell === current ? 0 : -1;
      cell.addEventListener('pointerenter', () => onMeant({ row, column }));
      cell.addEventListener('focus', () => {
        if (current !== undefined) current.tabIndex = -1;
        current = cell;
        cell.tabIndex = 0;
        onMeant({ row, column });
      });
      cell.addEventListener('keydown', (event) => {
        // Those are the browser's, such as Alt and left for the page before.
        if (event.altKey || event.ctrlKey || event.metaKey) return;
        const target = targetOf(event.key, cells, row, column);
        if (target === undefined) return;
        event.preventDefault();
        target.focus();
      });
    }
  }
}

function targetOf(key: string, cells: readonly (readonly HTMLElement[])[], row: number, column: number) {
  if (key === 'ArrowDown') return cells[row + 1]?.[column];
  if (key === 'ArrowUp') return cells[row - 1]?.[column];
  if (key === 'ArrowRight') return cells[row]?.[column + 1];
  if (key === 'ArrowLeft') return cells[row]?.[column - 1];
  if (key === 'Home') return cells[row]?.[0];
  if (key === 'End') return cells[row]?.at(-1);
  return undefined;
}
