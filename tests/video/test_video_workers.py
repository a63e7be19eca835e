"""Reading in loader processes after reading in the parent (spec/pitfalls.md V4)."""

import pytest
from torch.utils.data import DataLoader, Dataset
from video_clips import read_number, write_clip

from livemamba.video.file import VideoFile


class Clips(Dataset):
    def __init__(self, videos):
        self.videos = videos

    def __len__(self):
        return len(self.videos)

    def __getitem__(self, index):
        return [read_number(frame.pixels) for frame in self.videos[index]]


def one(batch):
    return batch[0]


def epochs(dataset, **loader):
    batches = DataLoader(dataset, batch_size=1, collate_fn=one, timeout=60 if loader else 0, **loader)
    return [list(batches) for _ in range(2)]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_give_the_frames_that_the_parent_gives(tmp_path, method):
    options = {"bf": "2", "g": "12"}
    videos = [
        VideoFile(write_clip(tmp_path / f"{n}.mp4", range(10 * n, 90 + 20 * n), options=options)) for n in range(4)
    ]
    half_read = iter(videos[0])
    next(half_read)
    alone = epochs(Clips(videos))
    assert alone[0] == alone[1] == [[*range(0, 90 + 10 * n, 15)] for n in range(4)]
    context = {"multiprocessing_context": method, "num_workers": 2, "persistent_workers": method == "spawn"}
    assert epochs(Clips(videos), **context) == alone
    assert read_number(next(half_read).pixels) == 15
